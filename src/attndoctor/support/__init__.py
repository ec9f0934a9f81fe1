"""What all stages of a diagnosis use; exercises use most of it, too.

texts           texts in a Markdown file beside the code that uses them
check_result    the result of a check and of a diagnosis
torch_settings  run other people's code under torch's default settings
printing        lines, numbers of things, progress bars
"""
