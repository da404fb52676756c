"""The drawings: one small file a figure of the paper, pictures of any result file, the report. They read results and compute nothing."""
