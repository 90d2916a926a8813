"""Traces the attention of transformers from other libraries; the model runs unchanged.

======================  =============================================================================================
``attention_calls``     sees each attention call of a forward pass, and computes the rows of its weights that are wanted
``model_facts``         what a model says of itself: tokens before the patches, pooling, classes, size of its input
``trace_of``            a model and a picture in, a trace out; which calls lie on the picture; rollout, which is derived
``published``           published models of timm and transformers by name, and such a model behind ``saccade look``
======================  =============================================================================================
"""
