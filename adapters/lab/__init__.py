"""The collapse lab: claims about how training fails, each run as a controlled experiment.

An experiment says what was claimed, which cells are compared and what is measured; everything else
is shared. In the order in which to read it:

    experiment, prediction                a claim, as something that numbers can refute
    experiments                           the experiments, one in a file; catalogue lists them
    units, runner, starts                 doing the work once, in parallel, in any number of pieces
    code_hash, definitions                what a record hangs on, and what may change without it
    results, figures                      from records to verdicts, plots and a page
    micro                                 a workflow model so small that a training takes a second
    sql                                   a model that answers in SQL, warmed up in half a minute

It needs the extra `train`, and the environments by their ids.
"""

from toolgym.former_paths import redirect

redirect({"adapters.lab.micro_loop": "adapters.lab.micro.loop"})
