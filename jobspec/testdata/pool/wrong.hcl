pool "Bad Name" {
  order     = "random"
  half_life = "3h"
  ceilings {
    nodes = -1
  }
  sku {}
  colour = "red"
}
