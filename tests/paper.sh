#!/bin/sh
# The paper's figures, statements and report, from nothing: paper.sh HEADFLOW FOLDER. All of them and as
# `make paper` makes them if HEADFLOW_TEST_EFFORT is full; else the figures that take seconds, and fewer
# runs behind each statement.
set -eu
headflow=$1 folder=$2
rm -rf "$folder"
if [ "${HEADFLOW_TEST_EFFORT:-}" = full ]; then
  "$headflow" reproduce all --quiet --output "$folder"
  "$headflow" verify --results "$folder" --quiet --output "$folder/verify.json"
else
  "$headflow" reproduce fig02 fig11 fig12 fig14 fig15 --quiet --output "$folder"
  "$headflow" verify --effort quick --results "$folder" --quiet --output "$folder/verify.json"
fi
PYTHONPATH=$(dirname "$0")/../python /usr/bin/python3 -P -m headflow.figures.report "$folder"
