"""The schedulers of Aurora (CAR ch. 3, 4, 6)."""
