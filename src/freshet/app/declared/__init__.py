"""What an application declares, checked: from a file or from Python."""
