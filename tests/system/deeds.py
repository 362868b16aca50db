"""Jobs that the tests run in real children: good ones, and every way to end badly."""
import os
def empty(arguments, report):
    return arguments
