// placeholder.
export async function addRemoteWriteRoute(..._a: unknown[]): Promise<void> {}
