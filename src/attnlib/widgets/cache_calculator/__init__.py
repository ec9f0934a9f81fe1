"""The widget CacheCalculator."""
