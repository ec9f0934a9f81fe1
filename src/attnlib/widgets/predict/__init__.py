"""The widget Predict."""
