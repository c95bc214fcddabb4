"""What stops a conversion: one line that names the file and what is wrong with it."""


class Refused(Exception):
    pass
