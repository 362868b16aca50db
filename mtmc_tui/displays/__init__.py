"""The displays: clients of the engine that show the same events in different ways."""
