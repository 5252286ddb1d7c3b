"""What each kind of result contributes to the decision in words."""
