"""What a session leaves behind: a stand-alone file, its test, its benchmark and a report."""
