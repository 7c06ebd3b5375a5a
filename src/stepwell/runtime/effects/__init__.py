"""Effects: calls from inside a node that change the outside world, each with an intent before and a receipt after.

`declared` says what an effect is, `decorator` makes one, `performing` is its life, `knowing` looks up what is known of
it, `writing` turns what happens into records and rows, `doubting` follows what was declared for a doubt. What a call is
to do is decided in `superstep/effects`.
"""
