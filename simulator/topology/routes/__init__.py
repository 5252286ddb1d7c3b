"""How bytes get from one accelerator to another: inside a unit, by which ports, over the fabric."""
