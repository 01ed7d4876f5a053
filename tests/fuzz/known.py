from __future__ import annotations
def answer_for(judge, program, verdict):
    return None
