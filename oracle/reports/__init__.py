"""Reports: what commands print or write, as text, JSON, HTML, SARIF, annotations, traces and figures.

Reports read results and run no kernel. `protocol` is what a report implements; `formats` has one file for each format
of an audit, and `VERB_report` the result of another command.
"""
