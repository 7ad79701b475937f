"""Plans as JSON: what is written here is read again as it was, by this version or a later one.

``VERSION`` names the format. A field that is added with a default, and has that default, is not
written, so that what was written before it was added is still equal to what is written now.
"""

VERSION = 1
