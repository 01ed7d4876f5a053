"""What a run did that a GPU would punish, or hide: from the machine's integers to sentences with a place."""
