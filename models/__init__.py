"""PyMC model definitions: one file, one model, one ``build(...)`` that returns it unsampled."""
