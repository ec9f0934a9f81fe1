"""What exercises are made of: mistakes with their hints, checks, answers on the page."""
