"""The life of an effect, as plain functions: intent → done | failed | in doubt.

`keys` says by what an effect is known, `rules` what a call is to do about what is known, `layout` how it stands in
records. Nothing here calls a body or reads a row; `runtime/effects` does.
"""
