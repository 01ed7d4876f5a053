diagnostic(ignore, derivative_uniformity);
