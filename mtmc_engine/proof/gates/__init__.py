"""The stages of proof, one module each; they fill in a Proof as they go."""
