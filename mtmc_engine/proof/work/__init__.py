"""What runs in disposable children: reference, candidate, judge, compiler. Imports torch."""
