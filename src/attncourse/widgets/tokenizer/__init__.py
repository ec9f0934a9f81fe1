"""The widget Tokenizer."""
