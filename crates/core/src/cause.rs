//! The cause of an error, in a form that errors which are cloned can hold.

use std::error::Error;
use std::ops::Deref;
use std::sync::Arc;

/// An error that caused another one. It is shared, because most errors cannot be cloned, and
/// dereferences to the error itself, so that [`source`](Error::source) can be downcast to its type.
///
/// # Examples
///
/// ```
/// use std::error::Error;
/// use std::io;
///
/// use adjutant_core::{Cause, ModelError, ProviderId};
///
/// let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
/// let error = ModelError::Network {
///     provider: ProviderId::new("acme")?,
///     message: refused.to_string(),
///     source: Some(Cause::new(refused)),
/// };
/// let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
/// assert_eq!(cause.map(io::Error::kind), Some(io::ErrorKind::ConnectionRefused));
/// # Ok::<(), adjutant_core::Empty>(())
/// ```
#[derive(Debug, Clone)]
pub struct Cause(Arc<dyn Error + Send + Sync>);

impl Cause {
    /// Creates a cause from an error or from a text.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(error.into().into())
    }
}

// Not an `impl Error for Cause`: then `source` would return the wrapper, and a caller who looks for
// the type of the error inside would not find it.
impl Deref for Cause {
    type Target = dyn Error + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}
