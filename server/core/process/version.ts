// The version of this program. package.json has the same; a test compares the two. It is a file of its own,
// so that a command can print it without loading the service.

export const version = '0.1.0'
