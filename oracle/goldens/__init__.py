"""What runs left and cost when somebody accepted it, kept beside the manifest."""
