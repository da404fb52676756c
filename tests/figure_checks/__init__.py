"""What the paper's figures must show, checked in their result files."""
