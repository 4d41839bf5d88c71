"""Many chains over one input: what they have in common is computed once."""
