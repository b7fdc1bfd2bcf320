// What opens the service for the person: tokens of programs, and browsers that are signed in.

import { call, path } from "./api.js";

/** Reads how people sign in here; works without being signed in. */
export const waysToSignIn = () => call("GET", "/v1/session");

export const loadAccess = () => call("GET", "/v1/tokens");
export const makeToken = (name, days) => call("POST", "/v1/tokens", { body: { name, days } });
export const revoke = (id) => call("DELETE", path("v1", "tokens", id));
