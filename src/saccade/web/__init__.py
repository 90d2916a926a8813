"""The page and its server: a model is asked over HTTP, and what comes back says where it looked.

``views`` turns a sighting into the JSON that the page draws and needs nothing but saccade itself; the server around it
needs the extra ``web``.
"""
