"""The widget GptSteps."""
