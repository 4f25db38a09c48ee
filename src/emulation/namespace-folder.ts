/** The folder of `ip netns`. A file of its own: what speaks to the network from outside must not load koffi. */
export const namespaceFolder = '/run/netns';
