"""The doctor of the museum: asks an attention, compares the answers, and names the bug.

told, names            what the reader says of it, and names that public code gives to things
constructing, build    making modules of a candidate, or copying one
places, bare, loading  where its weights are; the reference's are copied there
forward, mask_style    calling it as attnlib's attention is called
reference              what it is compared with: attnlib's attention, right or with an exhibit
asking, probes         the questions, and the paths on which they are put
comparing              when two answers are the same
patient                a candidate that can be asked, beside the reference
examine, find_masks    what kind of module it is
naming                 which exhibits it behaves like
report, diagnosis      what is said of it
check                  the same for tests
"""
