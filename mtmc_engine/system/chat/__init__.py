"""Talking to language models: remote and local servers through HTTP, model files through llama.cpp.

Each model lives behind a child process; this package's host modules are imported only there.
"""
