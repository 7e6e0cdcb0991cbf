// The version of this program. package.json names the same; a test holds the two together. It has a file of
// its own, so that a command can say it without loading the service.

export const version = '0.1.0'
