// What is wrong with the address of a control plane, whichever database it names.

/** The address is wrong; the message follows the name of its setting and says what to change. */
export class AddressProblem extends Error {}
