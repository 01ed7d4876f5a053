"""What is to be run: manifests, cases, the contents of bindings, and what a shader's text tells of them."""
