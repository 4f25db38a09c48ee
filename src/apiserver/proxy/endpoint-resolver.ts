/** Where a proxied request goes. */
export interface ProxyTarget {
  readonly scheme: 'http' | 'https';
  readonly host: string;
  readonly port: number;
}

/** Finds where requests to a Service's or Pod's `/proxy` go. */
export interface EndpointResolver {
  /** @param id `name`, `name:port` or `scheme:name:port`. @throws {StatusError} 400, 404, 503 */
  service(namespace: string, id: string): ProxyTarget;
  pod(namespace: string, id: string): ProxyTarget;
}
