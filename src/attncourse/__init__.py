"""attncourse: what only the lessons need.

lessons             a folder for each: its exercises and its own figures
checking            what exercises are made of: mistakes with their hints, verdicts
widgets             a folder for each interactive figure
tasks, training     made languages whose relations are known; trainings that give the same bits
interventions       muting, averaging and forbidding of what a trained model's heads do
data, tokens        trained weights and sweeps that are kept; tokenizers
atlas, parallel     every head of a reader's own model; heads over processes
model_bars          panels of bars per model, which two lessons draw
head_shards         the picture of a layer's heads on several devices
glue                measured numbers for a page's prose
"""
