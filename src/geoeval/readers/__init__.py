"""Files become units: vectors, rasters, COCO, tables."""
