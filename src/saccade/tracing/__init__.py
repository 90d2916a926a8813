"""Traces the attention of transformers from other libraries; the model runs unchanged.

======================  =============================================================================================
``attention_calls``     sees each attention call of a forward pass, and computes the rows of its weights that are wanted
``own_words``           what a model says of itself: tokens before the patches, pooling, classes, size of its input
``gathering``           which calls lie on the picture, which of their rows are kept, and why a model is refused
``rollout``             all layers multiplied into one map: derived, it multiplied no features
``trace_of``            the door: a model and a picture in, a trace out
``published``           what the two loaders return
``timm_models``         published models of timm, by name
``hf_models``           published models of transformers, by name or folder
``asking``              such a model behind ``saccade look``
======================  =============================================================================================
"""
