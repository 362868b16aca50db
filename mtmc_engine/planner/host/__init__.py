"""The child process that owns llama.cpp: nothing else imports these modules."""
