// What a program may have before it includes attune: global variables of ordinary names.
#pragma once

int x, y, z, row, rows, col, cols, step, scale, mask, bias, weights, view, data, size, count, total, value, values;
int input, output, target, label, loss, rate, model, layer, trainer, status, result;
