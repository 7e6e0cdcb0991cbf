// A control plane that this program must not use as it is. The message is for the operator: it says what is
// wrong and what to do, and never contains a secret.

export class ControlPlaneError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ControlPlaneError'
  }
}
