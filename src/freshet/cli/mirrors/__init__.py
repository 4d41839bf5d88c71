"""Commands about mirrors."""
