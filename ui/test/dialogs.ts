// Dialogs open and close, which jsdom does not know: without the layer above the
// page, which browsers are asked about.
HTMLDialogElement.prototype.showModal = function () {
  this.open = true
}
HTMLDialogElement.prototype.close = function () {
  this.open = false
}
