#!/usr/bin/env bash
# Calibrates one GPU in about five minutes, then checks the profile on eight training
# configurations that it was not fitted to. Prints the check and the file that holds it.
#
#   examples/calibration/one-gpu.sh [OUT]        (OUT: a new or begun folder; the default is ./one-gpu)
#
# Killed, it goes on where it was. PLAN, STEPS and DEVICE take the place of what stands below.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-one-gpu}
mkdir -p "$out"

traincast calibrate run --plan "${PLAN:-quick}" --device "${DEVICE:-cuda}" --budget '5 min' --out "$out/measured"
traincast calibrate fit "$out/measured" --out "$out/profile.toml"
traincast calibrate run --plan "${STEPS:-$here/one-gpu-steps.toml}" --device "${DEVICE:-cuda}" --out "$out/steps"
traincast calibrate check "$out/steps" --profile "$out/profile.toml" --only step --json "$out/result.json"
echo "result: $out/result.json, profile: $out/profile.toml"
