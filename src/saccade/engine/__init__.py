"""Training: a recipe and a task go in, a run folder comes out.

Of a task the engine asks the methods of :class:`saccade.tasks.task.Task` and nothing else. Several devices are driven
by Lightning Fabric, one by `SingleDevice`, which has the same interface.
"""
