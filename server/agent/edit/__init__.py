"""Operations on an artifact, foremost the edit of a selection. The types of a place in a text, in the order of an edit:

    message metadata --intent--> SelectionRequest   offsets, lines and quote in the sender's unit, of the base version
    SelectionRequest --locate--> EditTarget         a Span of the current version, found again if the text has moved
    EditTarget --edit_prompt--> EditPrompt          the selection and its context, as the model is asked
    the model's reply --EditReply, EditStream--> EditText   the change: a Span and the text that replaces it
    EditText --store--> TextEdit                    the change as a stored version keeps it

A `Span` (`store/text/spans.py`) is a range in code points; every type after `SelectionRequest` uses it.
"""
